"""HTTP to the API server: sessions, deadlines, the rate of requests, the server's clock."""
