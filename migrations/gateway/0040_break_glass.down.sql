drop table gateway.break_glass;
