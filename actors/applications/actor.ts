/** The OAuth clients of a tenant. decisions.md 7.4. */
import { defineActor } from '../../runtime/kernel/actor.js'
import type { Clock } from '../../runtime/kernel/clock.js'
import type { Random } from '../../runtime/kernel/random.js'
import {
  findApplication,
  insertApplication,
  listApplications,
  newClientSecret,
} from '../../storage/applications.js'
import { idempotently } from '../../storage/idempotency.js'
import type { Database, Transaction } from '../../storage/sql.js'
import { clientKind, draftFault, scopesBeyond } from './rules.js'
import {
  type ApplicationCreated,
  type ApplicationsProtocol,
  applications,
  type CreateApplication,
} from './protocol.js'

/** In a window of supervision; what fails more often than this is beyond any lost database. */
const FAILURES_TOLERATED_MAX = 1_000_000
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
/** Of the unique constraint in 0004_tokens.sql. */
const AUDIENCE_CONSTRAINT = 'applications_tenant_id_audience_key'

export type ApplicationsNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly issuer: string
}

export const applicationsActor = defineActor<ApplicationsProtocol, ApplicationsNeeds>({
  address: applications,
  asks: {},
  mailbox: { capacity: 1024, inflightMax: 128 },
  lane: { list: () => undefined, read: () => undefined, create: () => undefined },
  // A failure is one statement's or one request's: there is no state that a restart would mend, and
  // readiness learns of a lost database by itself, sooner both ways.
  supervision: { onFailure: 'resume', restartsMax: FAILURES_TOLERATED_MAX },
  create: ({ database, clock, random, issuer }) => {
    /** Inserts the application; its secret is in the outcome and nowhere else. */
    async function insert(
      tx: Transaction,
      { principal, draft }: CreateApplication,
    ): Promise<ApplicationCreated> {
      const kind = clientKind(draft)!
      const usesSecret = kind.tokenEndpointAuthMethod.startsWith('client_secret_')
      const secret = usesSecret ? newClientSecret(random) : null
      const application = await insertApplication(tx, {
        ...kind,
        id: random.uuid(),
        tenantId: principal.tenantId,
        name: draft.name,
        redirectUris: [...draft.redirectUris],
        createdAt: clock.now(),
        secretSha256: secret?.sha256 ?? null,
        ...stated({
          audience: draft.audience,
          postLogoutRedirectUris: copy(draft.postLogoutRedirectUris),
          allowedOrigins: copy(draft.allowedOrigins),
          grantTypes: copy(draft.grantTypes),
          responseTypes: copy(draft.responseTypes),
          scopes: copy(draft.scopes),
          jwks: draft.jwks && { keys: draft.jwks.keys.map((key) => ({ ...key })) },
          dpopBoundAccessTokens: draft.dpopBoundAccessTokens,
          requirePushedAuthorizationRequests: draft.requirePushedAuthorizationRequests,
          idTokenSignedResponseAlg: draft.idTokenSignedResponseAlg,
          logoUri: draft.logoUri,
        }),
      })
      return {
        tag: 'created',
        application: { ...application, clientId: application.id },
        clientSecret: secret?.secret ?? null,
        replayed: false,
      }
    }

    return {
      async list({ tenantId, limit, after }, { signal }) {
        // One more than asked for tells whether there is another page.
        const rows = await database.tenant(
          tenantId,
          (tx) => listApplications(tx, tenantId, limit + 1, after),
          { signal },
        )
        const page = rows.slice(0, limit)
        const last = page.at(-1)
        return {
          tag: 'listed',
          applications: page.map((row) => ({ ...row, clientId: row.id })),
          next:
            rows.length > limit && last !== undefined
              ? { createdAt: last.createdAt, id: last.id }
              : null,
        }
      },

      async read({ tenantId, applicationId }, { signal }) {
        if (!UUID.test(applicationId)) return { tag: 'unknown' }
        const row = await database.tenant(
          tenantId,
          (tx) => findApplication(tx, tenantId, applicationId),
          { signal },
        )
        if (row === undefined) return { tag: 'unknown' }
        return { tag: 'found', application: { ...row, clientId: row.id } }
      },

      async create(message, { signal }) {
        const { principal, draft, idempotency } = message
        const fault = draftFault(draft, issuer)
        if (fault !== undefined) return fault
        // Whoever creates a client could act as it: it must not hold more than its creator.
        const beyond = scopesBeyond(draft, principal.scopes)
        if (beyond.length > 0) return { tag: 'forbidden', scopes: beyond }
        try {
          return await database.tenant(
            principal.tenantId,
            (tx) =>
              idempotently(
                tx,
                idempotency,
                () => insert(tx, message),
                (created) => ({ ...created, clientSecret: null }),
              ),
            { signal },
          )
        } catch (error) {
          if (isAudienceTaken(error)) return { tag: 'audience_taken' }
          throw error
        }
      },
    }
  },
})

function copy(values: readonly string[] | undefined): string[] | undefined {
  return values && [...values]
}

/** Without the members that say nothing, so that the defaults of the row stand. */
function stated<T extends object>(members: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>
  }
}

function isAudienceTaken(error: unknown): boolean {
  return (error as { constraint?: unknown }).constraint === AUDIENCE_CONSTRAINT
}
