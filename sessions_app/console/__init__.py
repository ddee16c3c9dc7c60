"""What all pages for people stand on: the site, its skin, its navigation, its policies."""
