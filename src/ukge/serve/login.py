"""The page that asks a browser for the key."""

from __future__ import annotations

from starlette.responses import HTMLResponse

COOKIE = "ukge_pass"
LOGIN_PATH = "/login"

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>ukge: key</title>
<style>
:root {{ color-scheme: light dark; --paper: #f6f7f9; --card: #fff; --ink: #1a2027; --soft: #5f6b78; --line: #dde2e8;
  --accent: #2563a8; --wrong: #b42318; }}
@media (prefers-color-scheme: dark) {{ :root {{ --paper: #12161b; --card: #1a2027; --ink: #e7ebef; --soft: #9aa7b4;
  --line: #2c353f; --accent: #6aa9e9; --wrong: #f38a80; }} }}
body {{ margin: 0; min-height: 100vh; display: grid; place-items: center; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }}
form {{ background: var(--card); border: 1px solid var(--line); border-radius: 14px; padding: 28px;
  width: min(360px, 86vw); display: grid; gap: 12px; }}
h1 {{ font-size: 20px; margin: 0; }}
p {{ margin: 0; color: var(--soft); }}
p.wrong {{ color: var(--wrong); }}
input, button {{ font: inherit; padding: 10px 12px; border-radius: 9px; border: 1px solid var(--line); color: inherit;
  background: transparent; }}
button {{ background: var(--accent); border-color: var(--accent); color: var(--card); cursor: pointer; }}
</style>
</head>
<body>
<form method="post" action="{action}">
<h1>This graph is kept by a key</h1>
<p>Whoever started the service has it.</p>
{wrong}
<label for="key">API key</label>
<input id="key" name="key" type="password" autocomplete="current-password" required autofocus>
<button type="submit">Open</button>
</form>
</body>
</html>
"""


def login_page(status: int = 401, *, wrong: bool = False) -> HTMLResponse:
    """Return the form; `wrong` says that the key just given was not the right one."""
    told = '<p class="wrong" role="alert">That is not the key.</p>' if wrong else ""
    return HTMLResponse(PAGE.format(action=LOGIN_PATH, wrong=told), status)
