"""The same rows into fleetcast and into QuestDB."""
