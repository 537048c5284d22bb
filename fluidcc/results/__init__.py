"""Results of engines and analyses: labelled datasets with metrics."""
