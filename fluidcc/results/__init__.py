"""What engines and analyses return: labelled datasets with metrics."""
