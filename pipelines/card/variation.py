"""The variation of a release's texts, on the card of what was made of them."""

from __future__ import annotations

from pydantic import Field

from .parameters import Part


class VariedBy(Part):
    """A program, or a file that it was given, by its name alone."""

    name: str
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class Variation(Part):
    """The command that wrote the texts anew, from those of another release."""

    card_sha256: str = Field(
        pattern=r"^[0-9a-f]{64}$", description="of the release.json of that release"
    )
    command: list[str] = Field(
        min_length=1, description="the program and its arguments; files without their folders"
    )
    files: list[VariedBy] = Field(description="the program, and those arguments that are files")

    def fits(self) -> bool:
        """Return whether the files are the program and arguments, in order, without folders."""
        names = [file.name for file in self.files]
        arguments = iter(self.command)
        return (
            names[:1] == self.command[:1]
            and all(name in arguments for name in names)
            and not any("/" in name or not name for name in names)
        )

    @property
    def note(self) -> str:
        """Return the README's note on it."""
        command = " ".join(self.command).replace("`", "'")
        return (
            f"**Varied**: the texts were written anew by `{command}`, which was "
            "given the texts of the release whose `release.json` has the sha256 "
            f"`{self.card_sha256}`, and nothing else of it but their numbers and labels. What is "
            "made of released rows alone is protected as they are, at no further cost. Nothing "
            "checked what else the command read, and no text is one of the pool's any longer."
        )


UNCHECKED = (
    "whatever the command that varied the texts read besides the released rows: it ran with the "
    "rights of whoever started it, and only they know that it read nothing of the corpus"
)
"""The limit of a guarantee that holds for the released rows."""
