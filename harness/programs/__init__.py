"""Programs built from Go modules: a toolchain, locked and cached builds, files of a module at a version."""
