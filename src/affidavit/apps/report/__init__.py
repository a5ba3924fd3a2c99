"""The page that tells one session as a story and checks itself: one HTML file, no network."""
