"""Who is let in to a server, as whom, and how much of it each may use."""

from stratagem.surfaces.admission.authenticator import Admission, Admitted
from stratagem.surfaces.admission.middleware import Door

__all__ = ["Admission", "Admitted", "Door"]
