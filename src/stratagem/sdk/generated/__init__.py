"""Methods of the SDK, generated from the services by `make generate`."""
