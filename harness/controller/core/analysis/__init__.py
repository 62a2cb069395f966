"""What a release is judged by: webhooks and metrics, as questions and as verdicts. Asking them is the shell's."""
