"""How many I/O servers each job gets (GekkoFWD, section 3): jobs in a file, the policies' answers, table and plot."""
