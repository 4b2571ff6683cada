"""What a turn costs: ratios that must hold on any machine, and the microseconds behind them on this one."""
