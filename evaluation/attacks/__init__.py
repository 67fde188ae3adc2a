"""What somebody who holds a release can learn about the texts behind it."""
