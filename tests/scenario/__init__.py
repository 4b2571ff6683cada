"""Stories through the whole service: real git, a real store, and a clock that somebody moves."""
