/** Credentials, grants and leases. */
import { z } from 'zod'
import { type CredentialFound, vault } from '../../../actors/vault/vault/protocol.js'
import type { NewBudget } from '../../../actors/domain/vault/budgets.js'
import type { Principal } from '../../../actors/domain/principal.js'
import { callerOf } from '../../request/caller.js'
import { pageReply, PageQuery, readPage } from '../../request/paging.js'
import { json, problem, type Route, reply, route } from '../../route.js'
import { idempotencyRefusals } from '../operations/idempotency-refusals.js'
import { invalidMember } from '../operations/invalid-member.js'
import { stepUpNeeded } from '../operations/step-up.js'
import {
  OperatorCredential,
  VaultGrant,
  VaultLease,
} from '../../../actors/domain/entities/vault.js'
import {
  CreateCredential,
  CreateGrant,
  CreateLease,
  CredentialSecret,
  credentialRecord,
  grantRecord,
  grantRefusals,
  leaseRecord,
  operatorRecord,
  PatchCredential,
  RotateCredential,
} from './vault-shapes.js'

const CREDENTIALS = '/api/v1/vault/credentials'
const CredentialPath = z.object({ credential_id: z.string().max(64) })
const GrantPath = z.object({ grant_id: z.string().max(64) })
const LeasePath = z.object({ lease_id: z.string().max(64) })

const operators = { scheme: 'bearer', scopes: ['vault:manage'] } as const
const operation = { tags: ['Vault'], exposure: 'internal', security: operators } as const

const unknown = problem(404, 'not-found', { detail: 'There is no such credential.' })
const ownerRefusals = { ...grantRefusals, step_up: stepUpNeeded }
const revoked = problem(409, 'conflict', { detail: 'The credential is revoked.' })

const found = reply(200, OperatorCredential, ({ credential }: CredentialFound) =>
  operatorRecord(credential),
)

export const vaultRoutes: readonly Route[] = [
  route(vault, 'listVaultCredentials', {
    method: 'GET',
    path: CREDENTIALS,
    summary: 'List the credentials granted to the calling agent',
    description:
      'With a direct token with vault:manage: all credentials of the tenant, revoked ones included. ' +
      'The response never contains secrets.',
    tags: ['Vault'],
    exposure: 'public',
    security: {
      scheme: 'bearer',
      scopes: ['vault:list'],
      direct: 'forbidden',
      directScopes: ['vault:manage'],
    },
    capabilities: ['vault'],
    query: PageQuery,
    message: ({ query, principal }) => ({ principal, ...readPage(query) }),
    replies: {
      listed: pageReply(OperatorCredential, ({ credentials, managed }) =>
        credentials.map(managed ? operatorRecord : credentialRecord),
      ),
    },
  }),
  route(vault, 'createVaultCredential', {
    ...operation,
    method: 'POST',
    path: CREDENTIALS,
    summary: 'Create a credential',
    description: 'The caller becomes its owner. The response does not contain the secret.',
    idempotent: true,
    body: json(CreateCredential),
    message: (request) => ({
      caller: callerOf(request),
      provider: request.body.provider,
      credentialType: request.body.credential_type,
      label: request.body.label,
      authScheme: request.body.auth_scheme ?? null,
      allowedHosts: request.body.allowed_hosts,
      secret: request.body.secret ?? null,
      tokenOf: request.body.token_of ?? null,
      nonExportable: request.body.non_exportable,
      metadata: request.body.metadata,
      idempotency: request.idempotency,
    }),
    replies: {
      created: reply(
        201,
        OperatorCredential,
        ({ credential }) => operatorRecord(credential),
        ({ credential }) => ({ location: `${CREDENTIALS}/${credential.id}` }),
      ),
      invalid: invalidMember,
      ...ownerRefusals,
      full: problem(403, 'policy-denied', ({ most }) => ({
        reason: 'limit_reached',
        detail: `The tenant has the maximum of ${most} active credentials.`,
      })),
      ...idempotencyRefusals,
    },
  }),
  route(vault, 'getVaultCredential', {
    ...operation,
    method: 'GET',
    path: `${CREDENTIALS}/{credential_id}`,
    summary: 'Read a credential, without its secret',
    params: CredentialPath,
    message: one,
    replies: { found, unknown_credential: unknown },
  }),
  route(vault, 'updateVaultCredential', {
    ...operation,
    method: 'PATCH',
    path: `${CREDENTIALS}/{credential_id}`,
    summary: 'Change label, hosts or metadata of a credential',
    description:
      'Existing grants keep their hosts: more hosts do not widen them. Adding hosts, or source ' +
      'addresses of an ssh_ca, needs a direct token of the owner; a person also needs a sign-in ' +
      'with two factors within the last five minutes.',
    params: CredentialPath,
    body: json(PatchCredential),
    message: (request) => ({
      ...one(request),
      label: request.body.label,
      allowedHosts: request.body.allowed_hosts,
      metadata: request.body.metadata,
      authScheme: request.body.auth_scheme,
    }),
    replies: {
      found,
      unknown_credential: unknown,
      invalid: invalidMember,
      revoked,
      ...ownerRefusals,
    },
  }),
  route(vault, 'rotateVaultCredential', {
    ...operation,
    security: { ...operators, direct: 'required' },
    method: 'POST',
    path: `${CREDENTIALS}/{credential_id}/rotate`,
    summary: 'Replace the secret of a credential as its owner',
    description: 'A person needs a sign-in with two factors within the last five minutes.',
    params: CredentialPath,
    body: json(RotateCredential),
    message: (request) => ({
      ...one(request),
      secret: request.body.secret ?? null,
    }),
    replies: {
      found,
      unknown_credential: unknown,
      invalid: invalidMember,
      revoked,
      ...ownerRefusals,
    },
  }),
  route(vault, 'revokeVaultCredential', {
    ...operation,
    method: 'POST',
    path: `${CREDENTIALS}/{credential_id}/revoke`,
    summary: 'Revoke a credential with its grants and leases',
    params: CredentialPath,
    message: one,
    replies: { found, unknown_credential: unknown },
  }),
  route(vault, 'readVaultCredentialSecret', {
    method: 'GET',
    path: `${CREDENTIALS}/{credential_id}/secret`,
    summary: 'Read the secret of an exportable credential as its owner',
    description: 'A person needs a sign-in with two factors within the last five minutes.',
    tags: ['Vault'],
    exposure: 'internal',
    security: { scheme: 'bearer', scopes: ['vault:manage'], direct: 'required' },
    params: CredentialPath,
    message: one,
    replies: {
      secret: reply(200, CredentialSecret, ({ credentialId, secret }) => ({
        id: credentialId,
        secret,
      })),
      unknown_credential: unknown,
      ...ownerRefusals,
    },
  }),
  route(vault, 'listVaultGrants', {
    ...operation,
    method: 'GET',
    path: `${CREDENTIALS}/{credential_id}/grants`,
    summary: 'List the grants of a credential, newest first',
    params: CredentialPath,
    query: PageQuery,
    message: (request) => ({ ...one(request), ...readPage(request.query) }),
    replies: {
      listed: pageReply(VaultGrant, ({ grants }) => grants.map(grantRecord)),
      unknown_credential: unknown,
    },
  }),
  route(vault, 'createVaultGrant', {
    ...operation,
    method: 'POST',
    path: `${CREDENTIALS}/{credential_id}/grants`,
    summary: 'Grant a credential that you own to an agent or a delegation',
    capabilities: ['vault.budgets'],
    idempotent: true,
    params: CredentialPath,
    body: json(CreateGrant),
    message: (request) => ({
      ...one(request),
      granteeType: request.body.grantee_type,
      granteeId: request.body.grantee_id,
      capabilities: request.body.capabilities ?? null,
      methods: request.body.methods ?? null,
      pathPrefixes: request.body.path_prefixes ?? null,
      allowRange: request.body.allow_range,
      approval: request.body.approval,
      maxRequests: request.body.max_requests ?? null,
      maxBytes: request.body.max_bytes ?? null,
      ...budgetOf(request.body.budget),
      expiresAt: dateOf(request.body.expires_at),
      idempotency: request.idempotency,
    }),
    replies: {
      created: reply(
        201,
        VaultGrant,
        ({ grant }) => grantRecord(grant),
        ({ grant }) => ({ location: `${CREDENTIALS}/${grant.credentialId}/grants` }),
      ),
      unknown_credential: unknown,
      invalid: invalidMember,
      money_not_counted: problem(422, 'unprocessable-content', {
        detail: 'Calls through the egress proxy spend no money that svc could count.',
        errors: [{ pointer: '#/budget/amount_minor', detail: 'Must be omitted.' }],
      }),
      revoked,
      ...grantRefusals,
      ...idempotencyRefusals,
    },
  }),
  route(vault, 'revokeVaultGrant', {
    ...operation,
    method: 'POST',
    path: '/api/v1/vault/grants/{grant_id}/revoke',
    summary: 'Revoke a grant',
    params: GrantPath,
    message: (request) => ({
      caller: callerOf(request),
      grantId: request.params.grant_id,
    }),
    replies: {
      ended: reply(200, VaultGrant, ({ grant }) => grantRecord(grant)),
      unknown_grant: problem(404, 'not-found', { detail: 'There is no such grant.' }),
    },
  }),
  route(vault, 'listVaultLeases', {
    ...operation,
    method: 'GET',
    path: `${CREDENTIALS}/{credential_id}/leases`,
    summary: 'List the leases of a credential, newest first',
    params: CredentialPath,
    query: PageQuery,
    message: (request) => ({ ...one(request), ...readPage(request.query) }),
    replies: {
      listed: pageReply(VaultLease, ({ leases }) => leases.map(leaseRecord)),
      unknown_credential: unknown,
    },
  }),
  route(vault, 'createVaultLease', {
    ...operation,
    method: 'POST',
    path: `${CREDENTIALS}/{credential_id}/leases`,
    summary: 'Lease a credential that you own to an agent, with a byte budget',
    idempotent: true,
    params: CredentialPath,
    body: json(CreateLease),
    message: (request) => ({
      ...one(request),
      recipientId: request.body.recipient_id,
      byteBudget: request.body.byte_budget,
      expiresAt: dateOf(request.body.expires_at),
      idempotency: request.idempotency,
    }),
    replies: {
      created: reply(
        201,
        VaultLease,
        ({ lease }) => leaseRecord(lease),
        ({ lease }) => ({ location: `${CREDENTIALS}/${lease.credentialId}/leases` }),
      ),
      unknown_credential: unknown,
      invalid: invalidMember,
      revoked,
      ...grantRefusals,
      ...idempotencyRefusals,
    },
  }),
  route(vault, 'revokeVaultLease', {
    ...operation,
    method: 'POST',
    path: '/api/v1/vault/leases/{lease_id}/revoke',
    summary: 'Revoke a lease',
    params: LeasePath,
    message: (request) => ({
      caller: callerOf(request),
      leaseId: request.params.lease_id,
    }),
    replies: {
      ended: reply(200, VaultLease, ({ lease }) => leaseRecord(lease)),
      unknown_lease: problem(404, 'not-found', { detail: 'There is no such lease.' }),
    },
  }),
]

function one(request: {
  readonly principal: Principal
  readonly clientAddress: string
  readonly params: { readonly credential_id: string }
}) {
  return { caller: callerOf(request), credentialId: request.params.credential_id }
}

function budgetOf(budget: z.output<typeof NewBudget> | undefined) {
  if (budget === undefined) return { budget: null, countsMoney: false }
  const { window, requests = null, bytes = null, llm_tokens: llmTokens = null } = budget
  const countsMoney = budget.amount_minor !== undefined || budget.currency !== undefined
  return { budget: { window, requests, bytes, llmTokens }, countsMoney }
}

function dateOf(time: string | null | undefined): Date | null {
  return time === null || time === undefined ? null : new Date(time)
}
