"""What is measured in the virtual machine, and on what rigs."""
