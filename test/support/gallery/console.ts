/** Visits the main pages of the console, as an owner and for the guides. */
import sharp from 'sharp'
import { ownerOf } from '../identity/console.js'
import type { Window } from '../pages/chromium.js'
import { populateTenant } from '../service/populated-service.js'
import { startPopulatedService } from '../service/populated-service-parts.js'

/** Pictures of the console by name: caption in docs/guides/operations/console.md, and path. */
const LIST = [
  ['console', 'overview', () => '/console'],
  ['console-applications', 'applications', () => '/console/applications'],
  [
    'console-application',
    'an application',
    ({ application }) => `/console/applications/${application}`,
  ],
  ['console-people', 'people', () => '/console/people'],
  [
    'console-person-sessions',
    'where a person is signed in',
    ({ user }) => `/console/people/${user}/sessions`,
  ],
  ['console-agents', 'agents', () => '/console/agents'],
  ['console-vault', 'credentials of the vault', () => '/console/vault-credentials'],
  ['console-webhooks', 'webhooks', () => '/console/webhooks'],
  ['console-scim-token', 'a new SCIM token', () => '/console/scim-tokens/do/create'],
  ['console-assets', 'logo and favicon', () => '/console/assets'],
  ['console-settings', 'settings and branding', () => '/console/settings'],
  ['console-audit', 'audit log', () => '/console/audit'],
] as const satisfies readonly (readonly [string, string, (ids: Ids) => string])[]

type Ids = { readonly application: string; readonly user: string }

export type ConsolePictureName = (typeof LIST)[number][0]
/** Captions by name. */
export const CONSOLE_PICTURES: ReadonlyMap<string, string> = new Map(
  LIST.map(([name, words]) => [name, words]),
)

/** Opens each page in the window. */
export async function walkConsole(
  { context, page }: Window,
  see: (name: ConsolePictureName) => Promise<void>,
): Promise<void> {
  const resources = await startPopulatedService()
  const { api, receiver, running } = resources
  const tenant = await populateTenant(api, 'Harbour Works', receiver)
  const browser = await ownerOf(api, tenant)
  try {
    const { origin } = new URL(running.baseUrl)
    const secure = origin.startsWith('https:')
    await context.addCookies(
      [...browser.cookies].map(([name, value]) => ({ name, value, url: origin, secure })),
    )
    const ids = {
      application: tenant.objects['/api/v1/applications/{application_id}']!,
      user: tenant.objects['/api/v1/tenant-users/{user_id}']!,
    }
    const white = {
      create: { width: 120, height: 120, channels: 3, background: '#ffffff' },
    } as const
    const logo = await sharp({
      create: { ...white.create, width: 240, height: 240, background: '#0b7285' },
    })
      .composite([{ input: white }])
      .png()
      .toBuffer()
    await fetch(`${origin}/api/v1/tenant/branding/assets/logo`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${tenant.workspace.token}`, 'content-type': 'image/png' },
      body: new Uint8Array(logo),
    })
    for (const [name, , path] of LIST) {
      await page.goto(origin + path(ids))
      await see(name)
    }
  } finally {
    await browser.close()
    await resources.close()
  }
}
