/** Virtual authenticators of Chromium (WebAuthn Level 3 section 11), added to a page. */
import type { CDPSession, Page } from 'playwright-core'

export type Kind = {
  readonly protocol?: 'ctap2' | 'u2f'
  readonly transport?: 'usb' | 'internal'
  readonly hasResidentKey?: boolean
  readonly hasUserVerification?: boolean
  readonly isUserVerified?: boolean
  readonly defaultBackupEligibility?: boolean
  readonly defaultBackupState?: boolean
}

/** A security key with a PIN: its keys are device-bound. */
export const SECURITY_KEY: Kind = { transport: 'usb' }
/** A phone or a password manager that syncs passkeys to other devices. */
export const SYNCED: Kind = {
  transport: 'internal',
  defaultBackupEligibility: true,
  defaultBackupState: true,
}
/** A key without user verification: it only detects touch. */
export const TOUCH_ONLY: Kind = { hasUserVerification: false, isUserVerified: false }
export const U2F: Kind = { protocol: 'u2f', hasResidentKey: false, ...TOUCH_ONLY }

export type Virtual = {
  readonly credentials: () => Promise<{ signCount: number; userHandle?: string }[]>
  remove(): Promise<void>
}

export async function plugIn(page: Page, kind: Kind): Promise<Virtual> {
  const session: CDPSession = await page.context().newCDPSession(page)
  await session.send('WebAuthn.enable', { enableUI: false })
  const { authenticatorId } = await session.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'usb',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
      ...kind,
    },
  })
  return {
    credentials: async () =>
      (await session.send('WebAuthn.getCredentials', { authenticatorId })).credentials,
    remove: async () => {
      await session.send('WebAuthn.removeVirtualAuthenticator', { authenticatorId })
    },
  }
}
