-- Old processes may keep running: they ignore the column, and a link that a new process issued then keeps the factors.

-- A link of svc admin recover. Its use removes the second factors of the account.
alter table mail_tickets add column recovery boolean not null default false;
