"""What all surfaces of a server share: settings, open databases, bodies, responses, request ids."""
