/** French. No-break spaces precede colons, semicolons, question and exclamation marks. */
import type { MailCatalogue } from './en.js'

export const fr: MailCatalogue = {
  'mail.greeting': 'Bonjour,',
  'mail.ignore':
    'Si vous n’êtes pas à l’origine de cette demande, vous pouvez ignorer ce message : rien ne changera.',
  'mail.link.once': 'Le lien ne fonctionne qu’une fois, jusqu’au {time}.',
  'mail.link.copy': 'Si le bouton ne fonctionne pas, copiez cette adresse dans votre navigateur :',
  'mail.sender': 'Ce message a été envoyé pour le compte de {tenant}.',

  'sign_in.subject': 'Se connecter à {tenant}',
  'sign_in.lead':
    'Quelqu’un, probablement vous, souhaite se connecter à {tenant} avec cette adresse.',
  'sign_in.code': 'Saisissez ce code sur la page où vous l’avez demandé :',
  'sign_in.code.until':
    'Le code ne fonctionne qu’une fois, jusqu’au {time}. Ne le communiquez à personne.',
  'sign_in.link': 'Ouvrez ce lien dans le navigateur où vous l’avez demandé, puis confirmez :',
  'sign_in.button': 'Se connecter',

  'password_reset.subject': 'Définir un nouveau mot de passe pour {tenant}',
  'password_reset.lead':
    'Quelqu’un, probablement vous, a oublié le mot de passe de {tenant}. Choisissez-en un nouveau ici :',
  'password_reset.button': 'Choisir un nouveau mot de passe',

  'password_changed.subject': 'Votre mot de passe a été modifié',
  'password_changed.lead':
    'Le mot de passe de votre compte {tenant} a été modifié le {time}. Vous avez été déconnecté de tous vos autres appareils.',
  'password_changed.alarm':
    'Si ce n’était pas vous, réinitialisez immédiatement votre mot de passe et prévenez l’administrateur de {tenant}.',

  'account_recovery.subject': 'Récupération d’un compte chez {tenant}',
  'account_recovery.lead':
    'Un exploitant du service a émis le {time} un lien qui définit un nouveau mot de passe pour le compte {account} chez {tenant} et supprime ses seconds facteurs.',
  'account_recovery.alarm':
    'Si vous n’en connaissez pas la raison, contactez immédiatement l’exploitant du service.',

  'admin_password_reset.subject': 'Votre mot de passe pour {tenant} a été réinitialisé',
  'admin_password_reset.lead':
    'Un administrateur de {tenant} a réinitialisé votre mot de passe. L’ancien ne fonctionne plus et vous avez été déconnecté. Choisissez-en un nouveau ici :',
  'admin_factors_reset.subject': 'Vos seconds facteurs pour {tenant} ont été supprimés',
  'admin_factors_reset.lead':
    'Un administrateur de {tenant} a supprimé le {time} vos clés d’accès, votre application d’authentification et vos codes de récupération. Vous avez été déconnecté. Vous pourrez en configurer de nouveaux à la prochaine connexion.',
  'admin_factors_reset.password':
    'Il ne reste aucun autre moyen de vous connecter. Choisissez un mot de passe ici :',
  'admin_reset_refused.subject': 'Votre compte chez {tenant} n’a pas été modifié',
  'admin_reset_refused.lead':
    'Un administrateur de {tenant} a tenté le {time} de réinitialiser le mot de passe ou les seconds facteurs de votre compte. Rien n’a été modifié, car vous utilisez aussi ce compte ailleurs. Vous pouvez modifier les deux vous-même sur la page de votre compte.',
  'admin_reset.alarm':
    'Si vous n’en connaissez pas la raison, contactez l’administrateur de {tenant}.',

  'invitation.subject': 'Vous êtes invité à rejoindre {tenant}',
  'invitation.lead': 'Vous êtes invité à rejoindre {tenant}. Acceptez l’invitation ici :',
  'invitation.button': 'Accepter l’invitation',

  'email_verification.subject': 'Confirmez votre adresse e-mail pour {tenant}',
  'email_verification.lead': 'Confirmez que cette adresse e-mail est la vôtre :',
  'email_verification.button': 'Confirmer l’adresse',

  'sign_up.subject': 'Confirmez votre adresse pour {tenant}',
  'sign_up.lead':
    'Confirmez votre adresse pour terminer la création de votre compte chez {tenant} :',
  'sign_up.button': 'Terminer la création du compte',

  'sign_up_known.subject': 'Vous avez déjà un compte chez {tenant}',
  'sign_up_known.lead':
    'Vous avez essayé de vous inscrire chez {tenant} avec cette adresse, mais vous avez déjà un compte. Connectez-vous ici :',
  'sign_up_known.button': 'Se connecter',

  'confirmation_code.subject': 'Votre code pour {tenant}',
  'confirmation_code.lead': 'Saisissez ce code sur la page où vous l’avez demandé :',

  'text.code': '{code} est votre code pour {tenant}. Ne le communiquez à personne.',
}
