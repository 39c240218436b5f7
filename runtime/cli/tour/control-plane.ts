/** Tour: administration of a tenant, with its environments, users, agents and audit log. */
import { expect, fact, keep, member, type Step, TourStopped } from './journey.js'

const ORGANIZATIONS = '/api/v1/control-plane/organizations'

/** Uses the workspace, its tokens and the second agent, which logged in last. */
export const controlPlaneSteps: readonly Step[] = [
  [
    'The operator creates a second environment and gets a token for it',
    async (journey) => {
      const tenants = `${ORGANIZATIONS}/${fact(journey, 'organization')}/tenants`
      const token = fact(journey, 'operatorToken')
      const json = { name: 'Tour staging', environment: 'sandbox' }
      const made = await expect(journey, 201, { method: 'POST', path: tenants, token, json })
      const path = `${tenants}/${String(member(made.body, 'id'))}/switch`
      await expect(journey, 200, { method: 'POST', path, token })
    },
  ],
  [
    "The sandbox gets another test user, which the tenant's user list shows",
    async (journey) => {
      const token = fact(journey, 'workspaceToken')
      const path = '/api/v1/sandbox/fixture-users'
      const minted = await expect(journey, 201, { method: 'POST', path, token })
      const email = encodeURIComponent(String(member(minted.body, 'email')))
      const found = await expect(journey, 200, {
        method: 'GET',
        path: `/api/v1/tenant-users?email=${email}`,
        token,
      })
      if ((found.body as unknown[]).length !== 1) throw new TourStopped('the user is not listed')
    },
  ],
  [
    'The second agent is suspended: its token is refused at once',
    async (journey) => {
      const own = fact(journey, 'token')
      const path = '/api/v1/agents/me'
      await expect(journey, 200, { method: 'GET', path, token: own })
      await expect(journey, 200, {
        method: 'POST',
        path: `/api/v1/agents/${fact(journey, 'secondAgent')}/suspend`,
        token: fact(journey, 'workspaceToken'),
      })
      await expect(journey, 401, { method: 'GET', path, token: own })
    },
  ],
  [
    'The audit log has all of it, and its chain is intact',
    async (journey) => {
      const { body } = await expect(journey, 200, {
        method: 'GET',
        path: '/api/v1/audit-events/verify',
        token: fact(journey, 'workspaceToken'),
      })
      if (member(body, 'valid') !== true) throw new TourStopped('the audit chain is broken')
      keep(journey, body, { auditHash: 'last_hash' })
    },
  ],
]
