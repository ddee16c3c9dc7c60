"""Our own pages of the admin site: what lists and forms cannot show."""
