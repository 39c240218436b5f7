/** Users of a tenant and fixture users of a sandbox. */
import { z } from 'zod'
import { soughtEmail } from '../../../actors/domain/email.js'
import {
  IMPORT_LINES_MAX,
  IMPORT_REFUSALS,
  type ListUsers,
  USER_SORTS,
  type UserRecord,
  users,
} from '../../../actors/identity/users/protocol.js'
import { callerOf } from '../../request/caller.js'
import { presenter } from '../../response/presenter.js'
import { PageQuery, pageReply, readPage } from '../../request/paging.js'
import { csvOf } from '../../../actors/domain/entities/csv.js'
import { bytes, empty, json, problem, raw, type Route, reply, route } from '../../route.js'
import { idempotencyRefusals } from '../operations/idempotency-refusals.js'
import { stepUpNeeded } from '../operations/step-up.js'
import {
  ChangeTenantUser,
  CreateTenantUser,
  FixtureUser,
  profileOf,
  RotatedPassword,
  SoughtEmail,
  TenantUser,
  UserStatus,
  userJson,
} from './user-shapes.js'

const USERS = '/api/v1/tenant-users'
const USER = `${USERS}/{user_id}`

const tags = ['Tenant users'] as const
const readers = {
  scheme: 'bearer',
  controlPlaneTokens: 'operator',
  scopes: ['users:read', 'users:manage'],
} as const
const managers = {
  scheme: 'bearer',
  controlPlaneTokens: 'operator',
  scopes: ['users:manage'],
} as const
/** A person acts, by a recent sign-in with two factors. */
const resetters = { ...managers, subjects: ['human'], direct: 'required' } as const
/** The control plane is no sandbox. */
const ofSandbox = {
  tags: ['Sandbox'],
  exposure: 'public',
  security: { ...managers, controlPlaneTokens: 'refused' },
} as const

const SESSIONS = `${USER}/sessions`
const UserSession = z
  .object({
    id: z.uuid(),
    user_agent: z.string().meta({ description: 'User-Agent as sent, cut to 256 characters' }),
    address: z.string().meta({ description: 'Address of the client at the sign-in' }),
    acr: z.string().meta({ example: 'aal2' }),
    created_at: z.iso.datetime(),
    last_seen_at: z.iso.datetime(),
  })
  .meta({ id: 'TenantUserSession', description: 'A browser in which a user is signed in.' })
const sessionJson = presenter(UserSession)

const RESET_RULE =
  'For a person whose sign-in with two factors is at most 300 seconds old. Works where the account is used in this ' +
  'tenant only, or where the tenant verified the domain of the address and the organization has every other ' +
  'place of the account; otherwise 409 account_shared, and the person gets a message.'

const SORTS = USER_SORTS.flatMap((name) => [name, `-${name}` as const])
const isNewestFirst = (sort: string | undefined) => sort === undefined || sort === '-created_at'
const FILTERS = {
  status: UserStatus.optional(),
  email: SoughtEmail.optional(),
  q: z
    .string()
    .min(1)
    .max(254)
    .optional()
    .meta({ description: 'Begins the name or the address. Upper and lower case are the same.' }),
  role: z.string().min(1).max(64).optional().meta({ description: 'Users with this role.' }),
}
const ExportQuery = z.object(FILTERS)
const filterOf = (query: z.output<typeof ExportQuery>) => ({
  status: query.status ?? null,
  email: query.email ?? null,
  q: query.q === undefined ? null : (soughtEmail(query.q) ?? query.q),
  role: query.role ?? null,
})
const ListQuery = PageQuery.safeExtend({
  ...FILTERS,
  sort: z
    .enum(SORTS)
    .optional()
    .meta({ description: 'Order of the list, `-` for descending; default `-created_at`.' }),
  cursor_key: z.string().max(1024).optional().meta({
    description: 'As in the Link. Required with cursor_id where sort is not the default.',
  }),
}).refine(
  ({ sort, cursor_id: id, cursor_key: key }) =>
    isNewestFirst(sort) || (id === undefined) === (key === undefined),
  { message: 'cursor_key and cursor_id must be used together', path: ['cursor_key'] },
)

const orderOf = (sort: (typeof SORTS)[number] | undefined): ListUsers['order'] => {
  if (sort === undefined || isNewestFirst(sort)) return null
  const by = USER_SORTS.find((name) => sort.endsWith(name))!
  return { by, descending: sort.startsWith('-') }
}

function cursorOf(query: z.output<typeof ListQuery>): ListUsers['after'] {
  const { after } = readPage(query)
  return after && { ...after, key: query.cursor_key }
}

const IMPORT_BYTES_MAX = 5 * 1024 * 1024
const ImportedUsers = z
  .object({
    dry_run: z.boolean(),
    lines: z.array(
      z.object({
        line: z.int().meta({ description: 'In the file, from 1' }),
        email: z.string(),
        outcome: z.enum(['invite', 'create', 'exists', 'refused']).meta({
          description:
            'create: the tenant verified the domain, or it is reserved in a sandbox, so the person need not accept',
        }),
        reason: z.enum(IMPORT_REFUSALS).optional().meta({ description: 'Why it is refused' }),
      }),
    ),
  })
  .meta({ id: 'ImportedTenantUsers' })

const UserParams = z.object({ user_id: z.string().max(64) })
const managed = { tags, exposure: 'internal', security: managers, params: UserParams } as const

const ofUser = (
  request: Parameters<typeof callerOf>[0] & { readonly params: { readonly user_id: string } },
) => ({ caller: callerOf(request), userId: request.params.user_id })

const unknownUser = problem(404, 'not-found', { detail: 'The user does not exist.' })
const found = reply(200, TenantUser, ({ user }: { user: UserRecord }) => userJson(user))
const fixtureLimit = problem(409, 'conflict', {
  error: 'fixture_user_limit',
  detail: 'Five fixture users are active, which is the limit. Suspend or remove one first.',
})
const busy = problem(503, 'service-unavailable', {
  detail: 'The password workers are busy. Send the request again.',
  retryAfterSecs: 1,
})
const beyond = problem<{ roles: readonly string[] }, 'insufficient-scope'>(
  403,
  'insufficient-scope',
  ({ roles }) => ({
    detail: `The roles would grant more than the token has: ${roles.join(' ')}.`,
  }),
)
const fixtureBeyond = problem<{ roles: readonly string[] }, 'insufficient-scope'>(
  403,
  'insufficient-scope',
  ({ roles }) => ({
    detail: `The user has roles that grant more than the token has: ${roles.join(' ')}.`,
  }),
)

const owner_above_caller = problem(403, 'forbidden', {
  detail: 'The user is an owner of the tenant: only a token with tenant:manage may change it.',
})
const last_owner = problem(409, 'conflict', {
  error: 'last_owner',
  detail: 'A tenant needs an owner who can sign in: make another user an owner first.',
})
const rotated = reply(
  200,
  RotatedPassword,
  (user: { id: string; email: string; password: string; rotatedAt: Date }) => ({
    id: user.id,
    email: user.email,
    password: user.password,
    rotated_at: user.rotatedAt.toISOString(),
  }),
)
const rotatedReplies = {
  rotated,
  unknown_user: unknownUser,
  roles_beyond_caller: fixtureBeyond,
  busy,
}

const mailThrottled = problem(
  429,
  'rate-limited',
  ({ retryAfterSecs }: { retryAfterSecs: number }) => ({
    detail: 'The mail limit of the address or the tenant is reached.',
    retryAfterSecs,
  }),
)
const addressRefused = problem(403, 'policy-denied', {
  detail:
    'No mail can be sent to the address. A sandbox sends mail to reserved names such as example.com, to ' +
    'domains that its organization has verified, and to its owners.',
})
const resetReplies = {
  reset: empty(202),
  unknown_user: unknownUser,
  owner_above_caller: problem(403, 'forbidden', {
    detail:
      'The user is an owner of the tenant, or owns another tenant or the organization: only a token of an ' +
      'owner there may change it.',
  }),
  step_up: stepUpNeeded,
  account_shared: problem(409, 'conflict', {
    error: 'account_shared',
    detail:
      'The person uses the account in places that this tenant does not answer for, so nothing was changed. ' +
      'They got a message, and can change password and factors themselves.',
  }),
  user_not_active: problem<{ status: string }, 'conflict'>(409, 'conflict', ({ status }) => ({
    error: 'user_not_active',
    detail: `The user is ${status}: send the invitation again, or reactivate the user first.`,
  })),
  address_refused: addressRefused,
  mail_throttled: mailThrottled,
}

export const userRoutes: readonly Route[] = [
  route(users, 'mintFixtureUser', {
    method: 'POST',
    path: '/api/v1/sandbox/fixture-users',
    summary: 'Mint another fixture user of a sandbox',
    description: 'At most five are active at a time. The password is shown once.',
    ...ofSandbox,
    idempotent: true,
    onceOnly: true,
    message: (request) => ({
      caller: callerOf(request),
      idempotency: request.idempotency,
    }),
    replies: {
      minted: reply(
        201,
        FixtureUser,
        ({ id, email, password, status, createdAt }) => ({
          id,
          email,
          ...(password === null ? {} : { password }),
          status,
          created_at: createdAt.toISOString(),
        }),
        ({ id }) => ({ location: `${USERS}/${id}` }),
      ),
      not_sandbox: problem(403, 'policy-denied', {
        detail: 'Fixture users exist in sandbox environments only.',
      }),
      fixture_user_limit: fixtureLimit,
      busy,
      ...idempotencyRefusals,
    },
  }),
  route(users, 'rotateFixtureUserPassword', {
    method: 'POST',
    path: '/api/v1/sandbox/fixture-users/{user_id}/rotate-password',
    summary: 'Set a new password for a fixture user; its sessions end',
    ...ofSandbox,
    onceOnly: true,
    params: UserParams,
    message: ofUser,
    replies: rotatedReplies,
  }),
  route(users, 'rotateFixtureUserPassword', {
    method: 'POST',
    path: '/api/v1/sandbox/fixture-user/rotate-password',
    operationId: 'recoverFixtureUserPassword',
    summary: 'Set a new password for the oldest active fixture user',
    description: 'For callers who lost the password shown by a bootstrap.',
    deprecated: {
      since: new Date('2026-11-23'),
      sunset: new Date('2028-01-01'),
      link: '/documentation/reference/http.md#versions-and-deprecation',
      instead: 'rotateFixtureUserPassword',
    },
    ...ofSandbox,
    onceOnly: true,
    message: (request) => ({
      caller: callerOf(request),
      userId: null,
    }),
    replies: rotatedReplies,
  }),
  route(users, 'listTenantUsers', {
    method: 'GET',
    path: USERS,
    summary: 'List the users of the tenant, newest first',
    description:
      'Removed users are listed with status=removed only. In another order than newest first the Link to the next ' +
      'page also has cursor_key, and users without a sign-in come first in last_sign_in_at.',
    tags,
    exposure: 'public',
    security: readers,
    query: ListQuery,
    message: ({ query, principal }) => ({
      tenantId: principal.tenantId,
      ...filterOf(query),
      order: orderOf(query.sort),
      limit: readPage(query).limit,
      after: cursorOf(query),
    }),
    replies: {
      listed: pageReply(TenantUser, ({ rows }) => rows.map(userJson)),
    },
  }),
  route(users, 'exportTenantUsers', {
    method: 'GET',
    path: `${USERS}/export`,
    summary: 'Export the users of the tenant as CSV, newest first',
    description:
      'Columns email, name, status, roles, created_at (RFC 4180, UTF-8). A cell that a spreadsheet would run as a ' +
      'formula begins with an apostrophe. Takes the filters of the list. At most 100,000 users.',
    tags,
    exposure: 'internal',
    security: managers,
    query: ExportQuery,
    message: ({ query, principal }) => ({ tenantId: principal.tenantId, ...filterOf(query) }),
    replies: {
      exported: bytes(200, 'text/csv', ({ users: all }) => ({
        body: csvOf([
          ['email', 'name', 'status', 'roles', 'created_at'],
          ...all.map((user) => [
            user.email,
            user.displayName,
            user.status,
            user.roles.join(' '),
            user.createdAt.toISOString(),
          ]),
        ]),
        headers: { 'content-disposition': 'attachment; filename="people.csv"' },
      })),
    },
  }),
  route(users, 'importTenantUsers', {
    method: 'POST',
    path: `${USERS}/import`,
    summary: 'Invite or create the people of a CSV file',
    description:
      'The first line names the columns: email, and if wanted name and roles (with spaces between them). Others do not ' +
      `count, so an export can be imported. At most 5 MiB and ${IMPORT_LINES_MAX} people. Each line is done alone: ` +
      'send the file again after an interruption. With dry_run=true nothing changes, and the answer says what would happen.',
    tags,
    exposure: 'internal',
    security: managers,
    query: z.object({ dry_run: z.enum(['true', 'false']).optional() }),
    body: raw(['text/csv'], { maxBytes: IMPORT_BYTES_MAX, schema: z.string() }),
    message: (request) => ({
      caller: callerOf(request),
      csv: Buffer.from(request.body).toString('utf8'),
      isTrial: request.query.dry_run === 'true',
    }),
    replies: {
      imported: reply(200, ImportedUsers, ({ isTrial, lines }) => ({
        dry_run: isTrial,
        lines: lines.map(({ reason, ...line }) => ({ ...line, ...(reason && { reason }) })),
      })),
      unreadable: problem(400, 'bad-request', ({ detail }: { readonly detail: string }) => ({
        detail,
      })),
    },
  }),
  route(users, 'createTenantUser', {
    method: 'POST',
    path: USERS,
    summary: 'Invite a user, or provision one with a password',
    description:
      'With a password the user is pre-provisioned and may sign in immediately if the address is in a domain ' +
      'that the tenant verified, or, in a sandbox, under a reserved name such as .test. Otherwise the user is ' +
      'invited and the password is discarded, whether or not the address has an account.',
    tags,
    exposure: 'internal',
    security: managers,
    idempotent: true,
    body: json(CreateTenantUser),
    message: (request) => ({
      caller: callerOf(request),
      email: request.body.email,
      displayName: request.body.display_name,
      profile: profileOf(request.body),
      password: request.body.password,
      idempotency: request.idempotency,
    }),
    replies: {
      created: reply(
        201,
        TenantUser,
        ({ user }) => userJson(user),
        ({ user }) => ({ location: `${USERS}/${user.id}` }),
      ),
      user_exists: problem(409, 'conflict', {
        detail: 'The tenant already has a user with this address.',
      }),
      password_unacceptable: problem(400, 'bad-request', {
        detail: 'The password needs 12 to 256 characters and must not be the address.',
        errors: [{ pointer: '#/password', detail: 'is not acceptable' }],
      }),
      password_common: problem(400, 'bad-request', {
        detail: 'The password is among the most common ones.',
        errors: [{ pointer: '#/password', detail: 'is too common' }],
      }),
      password_breached: problem(400, 'bad-request', {
        detail: 'The password is known from breaches.',
        errors: [{ pointer: '#/password', detail: 'is known from breaches' }],
      }),
      password_unchecked: problem(503, 'service-unavailable', {
        detail: 'The breached-password check is temporarily unavailable.',
        retryAfterSecs: 5,
      }),
      busy,
      mail_throttled: mailThrottled,
      ...idempotencyRefusals,
    },
  }),
  route(users, 'sendTenantUserInvitation', {
    method: 'POST',
    path: `${USER}/invitation`,
    summary: 'Resend the invitation of a user',
    description:
      'The previous link becomes invalid. 429 with Retry-After when the invitation limit of the address or the ' +
      'tenant is reached; 403 when a sandbox may not send mail to the address.',
    ...managed,
    message: ofUser,
    replies: {
      found,
      unknown_user: unknownUser,
      not_invited: problem(409, 'conflict', { detail: 'The user has no pending invitation.' }),
      absent: problem(403, 'policy-denied', {
        reason: 'invitations_off',
        detail: 'This deployment sends no invitations by mail (invitations.enabled).',
      }),
      address_refused: addressRefused,
      mail_throttled: mailThrottled,
    },
  }),
  route(users, 'readTenantUser', {
    method: 'GET',
    path: USER,
    summary: 'Read a user',
    ...managed,
    security: readers,
    message: ofUser,
    replies: { found, unknown_user: unknownUser },
  }),
  route(users, 'updateTenantUser', {
    method: 'PATCH',
    path: USER,
    summary: 'Update name, profile claims, roles or metadata of a user in this tenant',
    description:
      'Values of the tenant win over values of the account, in this tenant only. The user cannot change them on ' +
      'the account page; null returns the claim to the user.',
    ...managed,
    body: json(ChangeTenantUser),
    message: (request) => ({
      ...ofUser(request),
      displayName: request.body.display_name,
      profile: profileOf(request.body),
      roles: request.body.roles,
      metadata: request.body.metadata,
    }),
    replies: {
      found,
      unknown_user: unknownUser,
      roles_beyond_caller: beyond,
      owner_above_caller,
      last_owner,
    },
  }),
  route(users, 'removeTenantUser', {
    method: 'DELETE',
    path: USER,
    summary: 'Remove a user from the tenant; their sessions here end immediately',
    description:
      'The record stays, listed with status=removed. A new invitation restores the same sub.',
    ...managed,
    message: ofUser,
    replies: { removed: empty(204), unknown_user: unknownUser, owner_above_caller, last_owner },
  }),
  route(users, 'suspendTenantUser', {
    method: 'POST',
    path: `${USER}/suspend`,
    summary: 'Suspend a user; their sessions here end immediately',
    description: 'Repeating the request changes nothing.',
    ...managed,
    message: ofUser,
    replies: { found, unknown_user: unknownUser, owner_above_caller, last_owner },
  }),
  route(users, 'reactivateTenantUser', {
    method: 'POST',
    path: `${USER}/reactivate`,
    summary: 'Lift a suspension: restores the previous status of the user',
    description: 'Repeating the request changes nothing.',
    ...managed,
    message: ofUser,
    replies: {
      found,
      unknown_user: unknownUser,
      fixture_user_limit: fixtureLimit,
      owner_above_caller,
      account_suspended: problem(409, 'conflict', {
        detail: 'The account is suspended by the operator of the deployment.',
      }),
    },
  }),
  route(users, 'resetTenantUserPassword', {
    method: 'POST',
    path: `${USER}/reset-password`,
    summary: 'Reset the password of a user: mails a link that sets a new one',
    description:
      'The old password stops working and the sessions in this tenant end immediately; sessions in other tenants stay ' +
      `until the link is used. ${RESET_RULE}`,
    ...managed,
    security: resetters,
    message: ofUser,
    replies: resetReplies,
  }),
  route(users, 'resetTenantUserFactors', {
    method: 'POST',
    path: `${USER}/reset-factors`,
    summary: 'Reset the second factors of a user: the next sign-in enrols new ones',
    description:
      'Passkeys, authenticator app and recovery codes are removed and the sessions in this tenant end immediately; ' +
      'password, phone and linked identities stay. The person gets a message, with a link that sets a password ' +
      `where no other way to sign in is left. ${RESET_RULE}`,
    ...managed,
    security: resetters,
    message: ofUser,
    replies: resetReplies,
  }),
  route(users, 'listTenantUserSessions', {
    method: 'GET',
    path: SESSIONS,
    summary: 'List where a user is signed in to the tenant',
    description: 'The open browser sessions, most recently used first, at most 100.',
    ...managed,
    message: ofUser,
    replies: {
      sessions: reply(200, z.array(UserSession), ({ sessions }) => sessions.map(sessionJson)),
      unknown_user: unknownUser,
    },
  }),
  route(users, 'revokeTenantUserSession', {
    method: 'DELETE',
    path: `${SESSIONS}/{session_id}`,
    summary: 'Sign a user out of one browser; tokens of that sign-in end immediately',
    ...managed,
    params: UserParams.extend({ session_id: z.string().max(64) }),
    message: (request) => ({
      ...ofUser(request),
      sessionId: request.params.session_id,
    }),
    replies: {
      session_ended: empty(204),
      unknown_user: unknownUser,
      unknown_session: problem(404, 'not-found', { detail: 'The session does not exist.' }),
      owner_above_caller,
    },
  }),
]
