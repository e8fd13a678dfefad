"""Who is let in to a server, as whom, and how much of it each may use."""

from stratagem.surfaces.admission.admitting import ADMITTED, Admission, Admitted
from stratagem.surfaces.admission.door import Door

__all__ = ["ADMITTED", "Admission", "Admitted", "Door"]
