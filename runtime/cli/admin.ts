/** `svc admin`: recovers an owner who lost every sign-in method. */
import type { Command } from 'commander'
import { shownEmail } from '../../actors/domain/email.js'
import {
  issueRecovery,
  type RecoveryRefused,
} from '../../actors/identity/sign-in/recovery/recover.js'
import { readEnvironment } from '../kernel/config/environment.js'
import { createMetrics } from '../kernel/metrics/metrics.js'
import { errorText } from '../process/error-text.js'
import { withTarget } from './target.js'
import { mailQueueOf } from '../process/wiring/mail.js'
import { openKeyTools } from './key-tools.js'
import { output } from './output.js'

type Wishes = { readonly tenant?: string; readonly json?: boolean }

const WHY_NOT: Readonly<Record<RecoveryRefused['tag'], string>> = {
  unknown_account: 'no active account has this address',
  not_owner:
    'the account owns no organization and administers no deployment: an owner of its organization invites it again',
  no_tenant: 'the account may sign in to no such active tenant',
}

/** Adds `admin` with its sub-command to the program. */
export function adminCommand(program: Command): void {
  program
    .command('admin')
    .description('emergency access to this deployment')
    .command('recover')
    .argument('<email>', 'the address of an owner or of an operator')
    .description('print a one-time link that sets a new password and removes the second factors')
    .option('--tenant <tenant>', 'ID or slug of the tenant where the link is opened')
    .option('--json', 'as JSON')
    .action(async (email: string, wishes: Wishes) => {
      try {
        output(`${await recover(email, wishes)}\n`)
      } catch (error) {
        process.stderr.write(`svc admin: ${errorText(error)}\n`)
        process.exitCode = 1
      }
    })
}

async function recover(email: string, { tenant, json = false }: Wishes): Promise<string> {
  const tools = await openKeyTools({
    environment: readEnvironment(),
    cwd: process.cwd(),
    uid: process.getuid?.(),
  })
  try {
    const metrics = createMetrics({ processMetrics: false })
    const mail = mailQueueOf({ ...tools, metrics })
    const { issuer_url: issuer } = tools.settings.oidc
    const issued = await issueRecovery({ ...tools, mail, issuer }, { email, tenant })
    if (issued.tag !== 'issued') throw new Error(`${email}: ${WHY_NOT[issued.tag]}`)
    const { url, tenantSlug, notified } = issued
    const expiresAt = issued.expiresAt.toISOString()
    if (json) {
      return JSON.stringify(
        withTarget({ url, expires_at: expiresAt, tenant_slug: tenantSlug, notified }),
        null,
        2,
      )
    }
    return [
      `Give this link to ${email}, on a channel where you know the person. It works once:`,
      '',
      `  ${url}`,
      '',
      `Until ${expiresAt}. It sets a new password, removes the second factors and ends all sessions.`,
      `A notice goes to ${notified.map(shownEmail).join(', ')}.`,
    ].join('\n')
  } finally {
    await tools.close()
  }
}
