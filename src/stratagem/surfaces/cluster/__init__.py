"""Messages between the processes of one server: on one machine, or through Redis."""
