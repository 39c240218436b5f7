/** Texts of the start page, of sign-up, and of the mails of a development service. */
export const firstSteps = {
  'home.for': 'Sign in to see your account, or read how to connect an application or an agent.',
  'home.workspace': 'Workspace slug',
  'home.console': 'Open the console',
  'home.mail': 'Mail of this development service',
  'home.agents': 'Start here if you are an agent',
  'home.overview': 'Overview for language models',
  'home.mcp': 'MCP server, without credentials',

  'error.home': 'Go to the start page',

  'register.title': 'Create your account',
  'register.lead': 'Create an account at {tenant}. We email you a link to confirm your address.',
  'register.submit': 'Send the link',
  'register.login': 'Already have an account? Sign in',
  'register.offer': 'No account yet? Create one',
  'register.sent': 'We sent an email to {email}. Open its link to continue.',
  'register.sent.hint': 'No email after a minute? Check the spam folder and the address.',
  'register.again': 'Use another address',
  'register.confirm.title': 'Finish your account',
  'register.confirm.lead': 'Your address is {email}. Choose a password for {tenant}.',
  'register.confirm.known':
    'You already have an account with {email}. Join {tenant}, then sign in the way you do elsewhere.',
  'register.confirm.submit': 'Create account',
  'register.confirm.join': 'Join {tenant}',
  'register.off.title': 'Sign-up is closed',
  'register.off': '{tenant} does not offer sign-up here. Ask an administrator for an invitation.',
  'register.gone.title': 'Link no longer valid',
  'register.gone': 'This link was used or has expired. Sign up again to get a new one.',
  'register.start': 'Sign up again',

  'dev_mail.title': 'Development mail',
  'dev_mail.lead':
    'The latest mail that this service sent, kept in memory. This page does not exist in production.',
  'dev_mail.none': 'No mail yet. Sign up or request a code, then reload.',
  'dev_mail.hint':
    'A sandbox writes only to addresses such as you@example.com, to verified domains and to its owners.',
  'dev_mail.reload': 'Reload',
  'dev_mail.message.title': 'Mail',
  'dev_mail.subject': 'Subject',
  'dev_mail.to': 'To',
  'dev_mail.sent': 'Sent',
  'dev_mail.open': 'Open the link',
  'dev_mail.text': 'As text',
  'dev_mail.html': 'As HTML',
  'dev_mail.back': 'All mail',
} as const
