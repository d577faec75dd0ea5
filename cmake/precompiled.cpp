// Nothing: the target that the precompiled headers belong to needs a file.
