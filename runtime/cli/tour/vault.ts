/** Tour: the vault, with an SSH certificate authority and a certificate. */
import { expect, fact, keep, member, short, type Step } from './journey.js'

export const vaultSteps: readonly Step[] = [
  [
    'Create an SSH certificate authority in the vault; its key never leaves the vault',
    async (journey) => {
      const { body } = await expect(journey, 201, {
        method: 'POST',
        path: '/api/v1/vault/credentials',
        token: fact(journey, 'workspaceToken'),
        json: { provider: 'ssh', credential_type: 'ssh_ca', label: 'Tour authority' },
      })
      keep(journey, body, { authority: 'id' })
    },
  ],
  [
    'Get a certificate with its own key, valid for five minutes',
    async (journey) => {
      const { body } = await expect(journey, 200, {
        method: 'POST',
        path: '/api/v1/agents/delegations/ssh-sign',
        token: fact(journey, 'workspaceToken'),
        json: {
          credential_id: fact(journey, 'authority'),
          target_host: 'db1.example.com',
          principals: ['deploy'],
        },
      })
      journey.say(`   trusted by: ${short({ ca_public_key: member(body, 'ca_public_key') })}`)
    },
  ],
]
