"""How objects of numapin.io/v1beta1 say what v1alpha1 says; see docs/decisions/0007."""
