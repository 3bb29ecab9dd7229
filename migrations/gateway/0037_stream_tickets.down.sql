drop table gateway.stream_tickets;
