"""The built-in tracers, one module each. None imports torch before it runs."""
