"""The skin (django-unfold), imported here and nowhere else."""

from unfold.admin import ModelAdmin
from unfold.forms import (
    AdminPasswordChangeForm,
    AuthenticationForm,
    UserChangeForm,
    UserCreationForm,
)
from unfold.sites import UnfoldAdminSite as SkinnedSite
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget as CheckboxList

__all__ = [
    "AdminPasswordChangeForm",
    "AuthenticationForm",
    "CheckboxList",
    "ModelAdmin",
    "SkinnedSite",
    "UserChangeForm",
    "UserCreationForm",
]
