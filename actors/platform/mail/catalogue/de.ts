/** German. */
import type { MailCatalogue } from './en.js'

export const de: MailCatalogue = {
  'mail.greeting': 'Guten Tag,',
  'mail.ignore': 'Wenn Sie das nicht waren, brauchen Sie nichts zu tun: Es ändert sich nichts.',
  'mail.link.once': 'Der Link gilt einmal, bis {time}.',
  'mail.link.copy':
    'Wenn die Schaltfläche nicht funktioniert, kopieren Sie diese Adresse in Ihren Browser:',
  'mail.sender': 'Diese Nachricht wurde im Auftrag von {tenant} versandt.',

  'sign_in.subject': 'Anmelden bei {tenant}',
  'sign_in.lead': 'Jemand, vermutlich Sie, möchte sich mit dieser Adresse bei {tenant} anmelden.',
  'sign_in.code': 'Geben Sie diesen Code auf der Seite ein, auf der Sie ihn angefordert haben:',
  'sign_in.code.until': 'Der Code gilt einmal, bis {time}. Geben Sie ihn an niemanden weiter.',
  'sign_in.link':
    'Öffnen Sie diesen Link in dem Browser, in dem Sie ihn angefordert haben, und bestätigen Sie dort:',
  'sign_in.button': 'Anmelden',

  'password_reset.subject': 'Neues Passwort für {tenant}',
  'password_reset.lead':
    'Jemand, vermutlich Sie, hat das Passwort für {tenant} vergessen. Wählen Sie hier ein neues:',
  'password_reset.button': 'Neues Passwort wählen',

  'password_changed.subject': 'Ihr Passwort wurde geändert',
  'password_changed.lead':
    'Das Passwort Ihres Kontos bei {tenant} wurde am {time} geändert. Überall sonst wurden Sie abgemeldet.',
  'password_changed.alarm':
    'Wenn Sie das nicht waren, setzen Sie sofort ein neues Passwort und informieren Sie den Administrator von {tenant}.',

  'account_recovery.subject': 'Kontowiederherstellung bei {tenant}',
  'account_recovery.lead':
    'Ein Betreiber des Dienstes hat am {time} einen Link ausgestellt, der für das Konto {account} bei {tenant} ein neues Passwort setzt und die zweiten Faktoren entfernt.',
  'account_recovery.alarm':
    'Wenn Sie den Grund nicht kennen, fragen Sie sofort den Betreiber des Dienstes.',

  'admin_password_reset.subject': 'Ihr Passwort für {tenant} wurde zurückgesetzt',
  'admin_password_reset.lead':
    'Ein Administrator von {tenant} hat Ihr Passwort zurückgesetzt. Das alte gilt nicht mehr, und Sie wurden abgemeldet. Wählen Sie hier ein neues:',
  'admin_factors_reset.subject': 'Ihre zweiten Faktoren für {tenant} wurden entfernt',
  'admin_factors_reset.lead':
    'Ein Administrator von {tenant} hat am {time} Ihre Passkeys, Ihre Authenticator-App und Ihre Wiederherstellungscodes entfernt. Sie wurden abgemeldet. Bei der nächsten Anmeldung können Sie neue einrichten.',
  'admin_factors_reset.password':
    'Eine andere Möglichkeit zur Anmeldung ist nicht übrig. Wählen Sie hier ein Passwort:',
  'admin_reset_refused.subject': 'Ihr Konto bei {tenant} wurde nicht geändert',
  'admin_reset_refused.lead':
    'Ein Administrator von {tenant} hat am {time} versucht, das Passwort oder die zweiten Faktoren Ihres Kontos zurückzusetzen. Es wurde nichts geändert, weil Sie das Konto auch anderswo verwenden. Auf Ihrer Kontoseite können Sie beides selbst ändern.',
  'admin_reset.alarm':
    'Wenn Sie den Grund nicht kennen, fragen Sie den Administrator von {tenant}.',

  'invitation.subject': 'Sie sind zu {tenant} eingeladen',
  'invitation.lead': 'Sie sind zu {tenant} eingeladen. Nehmen Sie die Einladung hier an:',
  'invitation.button': 'Einladung annehmen',

  'email_verification.subject': 'Bestätigen Sie Ihre E-Mail-Adresse für {tenant}',
  'email_verification.lead': 'Bestätigen Sie, dass dies Ihre E-Mail-Adresse ist:',
  'email_verification.button': 'Adresse bestätigen',

  'sign_up.subject': 'Bestätigen Sie Ihre Adresse für {tenant}',
  'sign_up.lead': 'Bestätigen Sie Ihre Adresse, um Ihr Konto bei {tenant} fertigzustellen:',
  'sign_up.button': 'Konto fertigstellen',

  'sign_up_known.subject': 'Sie haben bereits ein Konto bei {tenant}',
  'sign_up_known.lead':
    'Sie wollten sich mit dieser Adresse bei {tenant} registrieren, haben dort aber bereits ein Konto. Melden Sie sich hier an:',
  'sign_up_known.button': 'Anmelden',

  'confirmation_code.subject': 'Ihr Code für {tenant}',
  'confirmation_code.lead':
    'Geben Sie diesen Code auf der Seite ein, auf der Sie ihn angefordert haben:',

  'text.code': '{code} ist Ihr Code für {tenant}. Geben Sie ihn nicht weiter.',
}
