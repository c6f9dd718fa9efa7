//! A look at built datasets: reports, differences, and the story of one row.
