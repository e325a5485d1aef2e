"""`replay`: show an archive in a browser, served by pywb on this machine.

`server` runs pywb in an empty directory and gives it the content of archives and nothing else. `rewriter` extends its
rewriters, and `es_modules` changes ECMAScript modules so that they run.
"""
