"""Files that are either whole or not there, and that notice when they were changed.

Arrays go to safetensors, everything else is listed with its SHA-256 in a manifest. Nothing that is loaded here can
execute code. Knows nothing of what it stores.
"""
