"""What a tool and its runner are: schemas, sanitizing, and the contract of runners."""
