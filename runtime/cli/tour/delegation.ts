/** Tour: delegation. The user decides in a browser. */
import { expect, fact, keep, member, type Step } from './journey.js'

const DEVICE = '/api/v1/agents/delegations/device'

export const delegationSteps: readonly Step[] = [
  [
    "Request a delegation from the workspace's user, who would decide at the link",
    async (journey) => {
      const { body } = await expect(journey, 200, {
        method: 'POST',
        path: DEVICE,
        token: fact(journey, 'workspaceToken'),
        json: { scope: 'openid vault:list vault:read' },
      })
      keep(journey, body, { deviceCode: 'device_code' })
      const link = fact(journey, 'issuer') + String(member(body, 'verification_uri_complete'))
      journey.say(`   code ${String(member(body, 'user_code_display'))}, at ${link}`)
    },
  ],
  [
    'Poll for the token: the user has not decided yet',
    async (journey) => {
      const { body } = await expect(journey, 400, {
        method: 'POST',
        path: `${DEVICE}/token`,
        token: fact(journey, 'workspaceToken'),
        json: { device_code: fact(journey, 'deviceCode') },
      })
      journey.say(`   error: ${String(member(body, 'error'))}`)
    },
  ],
]
