// It lets devices.go declare a function without a body.
