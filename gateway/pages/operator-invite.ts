/** The page behind an operator invite: whose it is and until when it holds. */

/** An invite that can still be used. */
export function invitePage(organizationName: string, expiresAt: Date): string {
  const until = expiresAt.toISOString()
  return page(
    'Operator invite',
    `<p>You are invited to operate <strong>${escaped(organizationName)}</strong>.</p>
<p>The invite can be used once, until <time datetime="${until}">${readable(until)}</time>.
Keep its address to yourself: whoever opens it may use it.</p>`,
  )
}

export function inviteUnknownPage(): string {
  return page(
    'No such invite',
    '<p>There is no invite at this address. Check that it is whole.</p>',
  )
}

export function inviteGonePage(): string {
  return page(
    'Invite no longer valid',
    '<p>This invite was used or has expired. Ask whoever invited you for a new one.</p>',
  )
}

function page(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>${title}</title>
</head>
<body>
<main>
<h1>${title}</h1>
${body}
</main>
</body>
</html>
`
}

const readable = (iso: string) => `${iso.slice(0, 10)} ${iso.slice(11, 16)} UTC`

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character]!)
}
