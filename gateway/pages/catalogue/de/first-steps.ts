/** German texts of the start page, of sign-up, and of the mails of a development service. */
import type { firstSteps as english } from '../en/first-steps.js'

export const firstSteps: Readonly<Record<keyof typeof english, string>> = {
  'home.for':
    'Melden Sie sich an, um Ihr Konto zu sehen, oder lesen Sie, wie man eine Anwendung oder einen Agenten verbindet.',
  'home.workspace': 'Kürzel des Arbeitsbereichs',
  'home.console': 'Konsole öffnen',
  'home.mail': 'E-Mails dieses Entwicklungsdienstes',
  'home.agents': 'Einstieg für Agenten',
  'home.overview': 'Überblick für Sprachmodelle',
  'home.mcp': 'MCP-Server, ohne Zugangsdaten',

  'error.home': 'Zur Startseite',

  'register.title': 'Konto erstellen',
  'register.lead':
    'Erstellen Sie ein Konto bei {tenant}. Wir senden Ihnen einen Link, mit dem Sie Ihre Adresse bestätigen.',
  'register.submit': 'Link senden',
  'register.login': 'Schon ein Konto? Anmelden',
  'register.offer': 'Noch kein Konto? Jetzt erstellen',
  'register.sent':
    'Wir haben eine E-Mail an {email} gesendet. Öffnen Sie den Link darin, um fortzufahren.',
  'register.sent.hint':
    'Nach einer Minute noch keine E-Mail? Prüfen Sie den Spam-Ordner und die Adresse.',
  'register.again': 'Andere Adresse verwenden',
  'register.confirm.title': 'Konto fertigstellen',
  'register.confirm.lead': 'Ihre Adresse ist {email}. Wählen Sie ein Passwort für {tenant}.',
  'register.confirm.known':
    'Sie haben bereits ein Konto mit {email}. Treten Sie {tenant} bei und melden Sie sich dann wie gewohnt an.',
  'register.confirm.submit': 'Konto erstellen',
  'register.confirm.join': '{tenant} beitreten',
  'register.off.title': 'Keine Registrierung',
  'register.off':
    'Bei {tenant} kann man sich hier nicht registrieren. Bitten Sie einen Administrator um eine Einladung.',
  'register.gone.title': 'Link nicht mehr gültig',
  'register.gone':
    'Dieser Link wurde benutzt oder ist abgelaufen. Registrieren Sie sich erneut, um einen neuen zu erhalten.',
  'register.start': 'Erneut registrieren',

  'dev_mail.title': 'E-Mails der Entwicklung',
  'dev_mail.lead':
    'Die neuesten E-Mails dieses Dienstes, im Arbeitsspeicher. In Produktion gibt es diese Seite nicht.',
  'dev_mail.none':
    'Noch keine E-Mail. Registrieren Sie sich oder fordern Sie einen Code an, und laden Sie neu.',
  'dev_mail.hint':
    'Eine Sandbox schreibt nur an Adressen wie sie@example.com, an bestätigte Domains und an ihre Besitzer.',
  'dev_mail.reload': 'Neu laden',
  'dev_mail.message.title': 'E-Mail',
  'dev_mail.subject': 'Betreff',
  'dev_mail.to': 'An',
  'dev_mail.sent': 'Gesendet',
  'dev_mail.open': 'Link öffnen',
  'dev_mail.text': 'Als Text',
  'dev_mail.html': 'Als HTML',
  'dev_mail.back': 'Alle E-Mails',
}
