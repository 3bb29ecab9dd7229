drop table installer.agent_processes;
drop table installer.agents;
