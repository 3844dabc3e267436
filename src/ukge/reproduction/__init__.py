"""The paper's tables again: what was published, the settings, the trainings, the figures and the page of them."""
