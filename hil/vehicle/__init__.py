"""The vehicle model beside the rig: road, air and brakes."""
