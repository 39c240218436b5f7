-- Old processes may keep running: they find members by type and id, and no invitation by either.

-- An address that is invited is a row of its own until its owner comes: who has an account is not known to
-- those who invite.
alter table organization_members
  add column id uuid not null default gen_random_uuid() unique,
  add column email text,
  drop constraint organization_members_member_type_check,
  add constraint organization_members_member_type_check
    check (member_type in ('agent', 'account', 'invitation')),
  add constraint organization_members_invited check ((member_type = 'invitation') = (email is not null));
create unique index organization_members_invitations
  on organization_members (organization_id, lower(email)) where email is not null;
create index organization_members_by_invitation
  on organization_members (lower(email)) where email is not null;
create index organization_members_listed on organization_members (organization_id, created_at desc, id desc);
