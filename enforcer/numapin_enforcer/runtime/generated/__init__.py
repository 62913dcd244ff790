"""Messages generated from cri_v1.proto by `make proto`. Nothing here is written by hand."""
