"""The project itself: vocabulary, modules, dependencies, the Makefile, and documentation that matches the code."""
