"""What turns, requests and test branches cost: ratios that must hold on any machine, and the times on this one."""
