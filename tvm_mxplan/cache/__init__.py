"""Compilations kept on disk: the file format, the folder, and what goes into a file and comes out again.

container     one file: header, entries, digests; knows nothing of what is inside
safe_file     opening a file that others could have put there
store         a folder of such files: locked, bounded, private
surroundings  everything besides the model that a compilation depends on
artifact      an executable as entries, and back
outcome       what came of that, for the report
compile_cache what ``compile`` asks before it works, and hands over afterwards
choices_file  ``save_cache`` and ``load_cache``
"""
