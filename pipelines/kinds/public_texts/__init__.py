"""The kind `public-texts`: the public texts that private documents are most like."""
